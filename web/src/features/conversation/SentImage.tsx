import { useEffect, useState } from "react";
import { fileAddress } from "../../wire/files";

/** An image that went along with a prompt; a click shows it whole. */
export function SentImage({ path, name }: { path: string; name: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const leaving = new AbortController();
    let made: string | undefined;
    fileAddress(path, leaving.signal).then(
      (found) => {
        made = found;
        if (leaving.signal.aborted) URL.revokeObjectURL(found);
        else setAddress(found);
      },
      // Its name stands in its place.
      () => {},
    );
    return () => {
      leaving.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [path]);
  if (!address) return <span className="text-sm text-ink-3">{name}</span>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      <img src={address} alt={name} className="max-h-40 max-w-full rounded-lg border border-line" />
    </a>
  );
}
