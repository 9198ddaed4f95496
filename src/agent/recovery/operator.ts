/** Prompts and output of a session: a terminal, or a script with `--yes`. */
export interface Operator {
  /** Whether nobody can be asked: then steps that need a person are not done. */
  isAway?: boolean;
  print(line: string): void;
  /** Asks whether to go on. */
  ask(question: string): Promise<boolean>;
  /** Whether the operator typed exactly this name. */
  confirmName(what: string, name: string): Promise<boolean>;
}
