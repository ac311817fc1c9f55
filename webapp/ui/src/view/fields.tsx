// SPDX-License-Identifier: MIT
// Fields of forms, each with its label.
import type { JSX } from "preact";

export function TextField(props: {
  id: string;
  label: string;
  value: string;
  whole?: boolean;
  placeholder?: string;
  onValue: (value: string) => void;
}): JSX.Element {
  return (
    <div class={props.whole ? "field whole" : "field"}>
      <label for={props.id}>{props.label}</label>
      <input
        id={props.id}
        value={props.value}
        placeholder={props.placeholder ?? ""}
        onInput={(event) => props.onValue(event.currentTarget.value)}
      />
    </div>
  );
}

/** null: the field is empty. */
export function NumberField(props: {
  id: string;
  label: string;
  value: number | null | undefined;
  onValue: (value: number | null) => void;
}): JSX.Element {
  return (
    <div class="field">
      <label for={props.id}>{props.label}</label>
      <input
        id={props.id}
        type="number"
        value={props.value ?? ""}
        onInput={(event) => props.onValue(event.currentTarget.value === "" ? null : event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}
