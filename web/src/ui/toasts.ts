import { Toast } from "@base-ui/react/toast";

/** Outside React, because what goes wrong is mostly noticed there. */
export const toasts = Toast.createToastManager();
