/** A tiller seen from above: the bar, the stem, the wake. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" aria-hidden className={className}>
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <path
        d="M8 10h16M16 10v9M11 23c1.2-2.6 2.9-4 5-4s3.8 1.4 5 4"
        className="fill-none stroke-accent-ink"
        strokeWidth="2.6"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
