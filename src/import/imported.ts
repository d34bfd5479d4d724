// What another program's set-up becomes: models of a document, and remarks on what has no counterpart.
import type { DesiredModel } from "../desired/document/document.ts";

/** What was not taken over, or is otherwise here. */
export interface Remark {
  /** A model by the other program's name, or the program. */
  readonly about: string;
  /** Of the file that was read; from 1. */
  readonly line?: number;
  /** A fragment: it follows `about`. */
  readonly message: string;
}

/** A file that must lie beside gateway.yaml for a field to name it. */
export interface SideFile {
  readonly field: "mmproj" | "chatTemplate" | "lora";
  /** Absolute. */
  readonly path: string;
  /** In the document's folder. */
  readonly name: string;
}

export interface ImportedModel {
  /** The other program's name for it. */
  readonly name: string;
  /** As the document has it, without the fields of `beside`. */
  readonly model: DesiredModel;
  readonly beside: readonly SideFile[];
}

export interface Imported {
  readonly models: readonly ImportedModel[];
  readonly remarks: readonly Remark[];
}

/** The entry of the document, with the files beside it under their names. */
export function withSideFiles({ model, beside }: ImportedModel): DesiredModel {
  const lora = beside.filter(({ field }) => field === "lora").map(({ name }) => ({ source: `./${name}` }));
  const placeOf = (field: SideFile["field"]): string | undefined => {
    const file = beside.find((each) => each.field === field);
    return file && `./${file.name}`;
  };
  const [mmproj, chatTemplate] = [placeOf("mmproj"), placeOf("chatTemplate")];
  return {
    ...model,
    ...(mmproj === undefined ? {} : { mmproj }),
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
    ...(lora.length > 0 ? { lora } : {}),
  };
}
