/** Prompts and output of a session: a terminal, or a script with `--yes`. */
export interface Operator {
  /** There is no prompt: steps that need a person are not done. */
  isAway?: boolean;
  print(line: string): void;
  /** Whether to go on. */
  ask(question: string): Promise<boolean>;
  /** Whether the operator typed this very name. */
  confirmName(what: string, name: string): Promise<boolean>;
}
