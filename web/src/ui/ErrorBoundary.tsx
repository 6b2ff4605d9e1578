import { CircleAlert } from "lucide-react";
import { Component, type ReactNode } from "react";
import { Translation } from "react-i18next";
import { Button } from "./Button";

interface ErrorBoundaryProps {
  /** What to do besides drawing again, if drawing again alone can't help. */
  onRetry?: () => void;
  children: ReactNode;
}

/** Keeps what can't be drawn from taking the rest of the page with it. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  private readonly retry = () => {
    this.props.onRetry?.();
    this.setState({ error: undefined });
  };

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Translation>
        {(t) => (
          <div
            role="alert"
            className="flex items-start gap-2 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad"
          >
            <CircleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
            <p className="min-w-0 flex-1 break-words">{t("common.broken", { reason: error.message })}</p>
            <Button size="sm" onClick={this.retry}>
              {t("common.retry")}
            </Button>
          </div>
        )}
      </Translation>
    );
  }
}
