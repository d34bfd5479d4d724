// Whether the document names something again that was just taken out of it: whoever takes a model out and puts it back, or
// saves a file twice, does so within a breath, and what was downloaded of it is not to be thrown away for that.
import type { DesiredStore } from "../desired/store.ts";
import type { SpeechKind } from "../plan/observed.ts";

/** Both answer true at once, or as soon as a change of the document makes it so; false after a second. */
export interface SecondThoughts {
  model(id: string): Promise<boolean>;
  speech(kind: SpeechKind, choice: string): Promise<boolean>;
}

const breathMs = 1_000;

export function createSecondThoughts(store: Pick<DesiredStore, "current" | "onChange">): SecondThoughts {
  const looks = new Set<() => void>();
  store.onChange(() => {
    for (const look of looks) look();
  });

  function comesBack(isNamed: () => boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (answer: boolean): void => {
        clearTimeout(timer);
        looks.delete(look);
        resolve(answer);
      };
      const look = (): void => {
        if (isNamed()) end(true);
      };
      const timer = setTimeout(() => end(isNamed()), breathMs);
      looks.add(look);
      look();
    });
  }

  return {
    model: (id) => comesBack(() => store.current().document.models.some((model) => model.id === id)),
    speech: (kind, choice) => comesBack(() => store.current().document.speech?.[kind] === choice),
  };
}
