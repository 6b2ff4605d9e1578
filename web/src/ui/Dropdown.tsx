import { Menu } from "@base-ui/react/menu";
import { Check, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { cn } from "../lib/cn";

const itemClass =
  "flex cursor-default items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm text-ink outline-none select-none data-[highlighted]:bg-hover [&_svg]:size-3.5 [&_svg]:shrink-0 [&_svg]:text-ink-3 pointer-coarse:py-2.5";

interface DropdownProps {
  label: string;
  trigger: ReactNode;
  triggerClassName: string;
  side?: "top" | "bottom";
  align?: "start" | "end";
  children: ReactNode;
}

export function Dropdown({
  label,
  trigger,
  triggerClassName,
  side = "bottom",
  align = "end",
  children,
}: DropdownProps) {
  return (
    <Menu.Root>
      <Menu.Trigger aria-label={label} className={triggerClassName}>
        {trigger}
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner side={side} align={align} sideOffset={6} className="z-50">
          <Menu.Popup className="min-w-44 rounded-lg border border-line bg-raised p-1 shadow-pop transition-opacity outline-none data-[ending-style]:opacity-0 data-[starting-style]:opacity-0">
            {children}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

interface DropdownItemProps {
  icon: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  children: ReactNode;
}

export function DropdownItem({
  icon,
  onSelect,
  danger = false,
  disabled = false,
  children,
}: DropdownItemProps) {
  return (
    <Menu.Item
      className={cn(itemClass, danger && "text-bad [&_svg]:text-bad", disabled && "opacity-50")}
      disabled={disabled}
      onClick={onSelect}
    >
      {icon}
      {children}
    </Menu.Item>
  );
}

interface DropdownSubmenuProps {
  icon: ReactNode;
  label: string;
  children: ReactNode;
}

/** More choices behind one entry. */
export function DropdownSubmenu({ icon, label, children }: DropdownSubmenuProps) {
  return (
    <Menu.SubmenuRoot>
      <Menu.SubmenuTrigger className={cn(itemClass, "data-[popup-open]:bg-hover")}>
        {icon}
        <span className="flex-1">{label}</span>
        <ChevronRight />
      </Menu.SubmenuTrigger>
      <Menu.Portal>
        <Menu.Positioner sideOffset={4} alignOffset={-4} className="z-50">
          <Menu.Popup className="max-h-[60vh] min-w-44 overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-pop outline-none">
            {children}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.SubmenuRoot>
  );
}

interface DropdownSwitchProps {
  icon: ReactNode;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}

export function DropdownSwitch({ icon, checked, disabled = false, onChange, children }: DropdownSwitchProps) {
  return (
    <Menu.CheckboxItem
      checked={checked}
      disabled={disabled}
      onCheckedChange={onChange}
      className={cn(itemClass, disabled && "opacity-50")}
    >
      {icon}
      <span className="flex-1">{children}</span>
      <Menu.CheckboxItemIndicator>
        <Check />
      </Menu.CheckboxItemIndicator>
    </Menu.CheckboxItem>
  );
}

export const DropdownSeparator = () => <Menu.Separator className="mx-1 my-1 h-px bg-line" />;

interface DropdownChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly { readonly value: T; readonly label: string; readonly icon?: ReactNode }[];
  onChange: (value: T) => void;
}

export function DropdownChoice<T extends string>({
  label,
  value,
  options,
  onChange,
}: DropdownChoiceProps<T>) {
  return (
    <Menu.RadioGroup value={value} onValueChange={(next: T) => onChange(next)}>
      <Menu.Group>
        <Menu.GroupLabel className="px-2.5 pt-1.5 pb-1 text-2xs font-medium text-ink-3">
          {label}
        </Menu.GroupLabel>
        {options.map((option) => (
          <Menu.RadioItem key={option.value} value={option.value} closeOnClick className={itemClass}>
            {option.icon}
            <span className="flex-1">{option.label}</span>
            <Menu.RadioItemIndicator>
              <Check />
            </Menu.RadioItemIndicator>
          </Menu.RadioItem>
        ))}
      </Menu.Group>
    </Menu.RadioGroup>
  );
}
