import { useTranslation } from "react-i18next";
import { Kbd } from "../../ui/Kbd";
import { Group, Page, Rows } from "../../ui/Page";

type Ways = readonly (readonly string[])[];

/** The names of keys are the same in every language. */
const groups = [
  {
    name: "everywhere",
    keys: [
      ["palette", [["Ctrl", "K"]]],
      ["new", [["Alt", "N"]]],
      ["inbox", [["Alt", "I"]]],
      [
        "waiting",
        [
          ["Alt", "J"],
          ["Alt", "K"],
        ],
      ],
      ["list", [["Alt", "S"]]],
      ["tab", [["Alt", "1…9"]]],
      ["find", [["Ctrl", "F"]]],
      ["side", [["Ctrl", "B"]]],
      ["panel", [["Ctrl", "J"]]],
      ["changes", [["Alt", "C"]]],
      ["split", [["Alt", "\\"]]],
      [
        "pane",
        [
          ["Alt", "O"],
          ["Alt", "Shift", "O"],
        ],
      ],
      ["closePane", [["Alt", "W"]]],
      ["shortcuts", [["?"]]],
    ],
  },
  {
    name: "list",
    keys: [
      ["row", [["↑"], ["↓"]]],
      ["fold", [["←"], ["→"]]],
      ["typeAhead", [["A…Z"]]],
      ["besideRow", [["Ctrl", "Enter"]]],
      [
        "reorder",
        [
          ["Alt", "↑"],
          ["Alt", "↓"],
        ],
      ],
    ],
  },
  {
    name: "input",
    keys: [
      ["send", [["Enter"]]],
      [
        "newline",
        [
          ["Shift", "Enter"],
          ["Ctrl", "Enter"],
        ],
      ],
      ["stop", [["Esc"]]],
      ["clear", [["Ctrl", "L"]]],
      ["recall", [["↑"], ["↓"]]],
      ["commands", [["/"]]],
      ["files", [["@"]]],
    ],
  },
  {
    name: "decision",
    keys: [
      ["allow", [["Ctrl", "Enter"], ["Y"]]],
      ["always", [["Alt", "A"], ["A"]]],
      ["edit", [["Alt", "E"], ["E"]]],
      ["deny", [["Alt", "D"], ["N"]]],
      ["choose", [["1…9"]]],
      ["next", [["J"], ["K"]]],
    ],
  },
] as const;

export function ShortcutsPage() {
  const { t } = useTranslation();
  return (
    <Page page="shortcuts">
      {groups.map(({ name, keys }) => (
        <Group key={name} title={t(`shortcuts.${name}`)}>
          <Rows>
            {keys.map(([action, ways]) => (
              <li key={action} className="flex items-center justify-between gap-4 px-4 py-2 text-sm">
                <span>{t(`shortcuts.action.${action}`)}</span>
                <KeyNames ways={ways} />
              </li>
            ))}
          </Rows>
        </Group>
      ))}
    </Page>
  );
}

function KeyNames({ ways }: { ways: Ways }) {
  const { t } = useTranslation();
  return (
    <span className="flex shrink-0 items-center gap-2">
      {ways.map((way, index) => (
        <span key={way.join()} className="flex items-center gap-1">
          {index > 0 && <span className="mr-1 text-xs text-ink-3">{t("shortcuts.or")}</span>}
          {way.map((key) => (
            <Kbd key={key} className="h-5.5 min-w-5.5 pointer-coarse:inline-flex">
              {key}
            </Kbd>
          ))}
        </span>
      ))}
    </span>
  );
}
