import { useCallback, useState } from "react";
import { create } from "zustand";
import type { NewAttachment } from "../gen/events";
import { type ImageProblem, problemOf, readImage, sizeOf } from "./images";

export interface Images {
  readonly images: NewAttachment[];
  readonly problem: ImageProblem | undefined;
  readonly add: (files: readonly File[]) => void;
  readonly remove: (index: number) => void;
  readonly clear: () => void;
}

/** By owner, as drafts are, and for as long as the page lives: images are too large for what the browser keeps. */
const useStored = create<{ readonly byOwner: ReadonlyMap<string, NewAttachment[]> }>()(() => ({
  byOwner: new Map(),
}));

const NONE: NewAttachment[] = [];
const imagesOf = (owner: string) => useStored.getState().byOwner.get(owner) ?? NONE;

function setImages(owner: string, images: NewAttachment[]): void {
  useStored.setState(({ byOwner }) => {
    const next = new Map(byOwner);
    if (images.length === 0) next.delete(owner);
    else next.set(owner, images);
    return { byOwner: next };
  });
}

/** They were sent. */
export function forgetImages(owner: string): void {
  setImages(owner, NONE);
}

/** Hands them over; they are nobody's then. */
export function takeImages(owner: string): readonly NewAttachment[] {
  const images = imagesOf(owner);
  forgetImages(owner);
  return images;
}

/** They were sent and did not arrive: they come before what has been added since. */
export function giveBackImages(owner: string, images: readonly NewAttachment[]): void {
  if (images.length > 0) setImages(owner, [...images, ...imagesOf(owner)]);
}

/** The images that go along with the next prompt. */
export function useImages(owner: string): Images {
  const images = useStored((state) => state.byOwner.get(owner) ?? NONE);
  const [problem, setProblem] = useState<ImageProblem>();
  const add = useCallback(
    (files: readonly File[]) => {
      setProblem(undefined);
      const sizes = imagesOf(owner).map(sizeOf);
      for (const file of files) {
        const refused = problemOf(file, sizes);
        if (refused) {
          setProblem(refused);
          continue;
        }
        sizes.push(file.size);
        void readImage(file).then(
          (image) => setImages(owner, [...imagesOf(owner), image]),
          () => setProblem("type"),
        );
      }
    },
    [owner],
  );
  const remove = useCallback(
    (index: number) => {
      setImages(
        owner,
        imagesOf(owner).filter((_, at) => at !== index),
      );
      setProblem(undefined);
    },
    [owner],
  );
  const clear = useCallback(() => {
    forgetImages(owner);
    setProblem(undefined);
  }, [owner]);
  return { images, problem, add, remove, clear };
}
