/** One instruction of a Dockerfile; `rest` is on one line. */
export interface Instruction {
  readonly keyword: string;
  readonly rest: string;
}

/** The instructions of a Dockerfile, without comments and with continued lines joined. */
export function instructionsOf(text: string): Instruction[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .flatMap((line) => {
      const [, keyword, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      return keyword && rest !== undefined ? [{ keyword, rest: rest.trim() }] : [];
    });
}

/** The instructions of each stage by its name; instructions before the first stage belong to none. */
export function stagesOf(instructions: readonly Instruction[]): Map<string, Instruction[]> {
  const stages = new Map<string, Instruction[]>();
  let stage: Instruction[] = [];
  for (const instruction of instructions) {
    if (instruction.keyword === 'FROM') {
      const [, name] = / AS (\S+)$/.exec(instruction.rest) ?? [];
      stage = [];
      stages.set(name ?? String(stages.size), stage);
    } else stage.push(instruction);
  }
  return stages;
}
