import { useCallback, useEffect, useRef, useState } from "react";
import type { NewAttachment } from "../gen/events";
import { type ImageProblem, problemOf, readImage } from "./images";

export interface Images {
  readonly images: NewAttachment[];
  readonly problem: ImageProblem | undefined;
  readonly add: (files: readonly File[]) => void;
  readonly remove: (index: number) => void;
  readonly clear: () => void;
}

/** The images that go along with the next prompt. */
export function useImages(): Images {
  const [images, setImages] = useState<NewAttachment[]>([]);
  const [problem, setProblem] = useState<ImageProblem>();
  const count = useRef(0);
  useEffect(() => {
    count.current = images.length;
  }, [images]);
  const add = useCallback((files: readonly File[]) => {
    setProblem(undefined);
    for (const [index, file] of files.entries()) {
      const refused = problemOf(file, count.current + index);
      if (refused) setProblem(refused);
      else
        void readImage(file).then(
          (image) => setImages((before) => [...before, image]),
          () => setProblem("type"),
        );
    }
  }, []);
  const remove = useCallback((index: number) => {
    setImages((before) => before.filter((_, at) => at !== index));
    setProblem(undefined);
  }, []);
  const clear = useCallback(() => {
    setImages([]);
    setProblem(undefined);
  }, []);
  return { images, problem, add, remove, clear };
}
