import { Toast } from "@base-ui/react/toast";
import { CircleAlert, Info, X } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { iconButtonClass } from "./IconButton";
import { listening, manager } from "./toasts";

export function Toaster() {
  // After the provider has begun to listen, whose effects run before this one's.
  useEffect(listening, []);
  return (
    <Toast.Provider toastManager={manager} limit={4}>
      <Toast.Portal>
        <Toast.Viewport className="pointer-events-none fixed top-14 right-3 left-3 z-50 flex flex-col items-center gap-2 outline-none sm:left-auto sm:items-end *:pointer-events-auto">
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function ToastList() {
  const { t } = useTranslation();
  const { toasts: shown } = Toast.useToastManager();
  return shown.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      swipeDirection={["right", "up"]}
      className="flex w-full max-w-sm items-start gap-2.5 rounded-xl border border-line bg-raised py-2.5 pr-2 pl-3.5 shadow-pop transition duration-200 data-[ending-style]:opacity-0 data-[limited]:hidden data-[starting-style]:-translate-y-2 data-[starting-style]:opacity-0"
    >
      <span className="mt-1">
        {toast.type === "error" ? (
          <CircleAlert className="size-4 text-bad" aria-label={t("common.error")} />
        ) : (
          <Info className="size-4 text-ink-3" aria-hidden />
        )}
      </span>
      <div className="min-w-0 flex-1 py-0.5">
        <Toast.Title className="text-sm font-medium break-words" />
        <Toast.Description className="text-sm break-words text-ink-2" />
      </div>
      {toast.actionProps && (
        <Toast.Action className="h-7 shrink-0 rounded-md px-2 text-sm font-medium text-accent hover:bg-hover" />
      )}
      <Toast.Close aria-label={t("common.close")} className={iconButtonClass}>
        <X className="size-3.5" />
      </Toast.Close>
    </Toast.Root>
  ));
}
