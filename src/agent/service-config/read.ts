import { resolve } from 'node:path';
import type { Environment } from '../config/expand.ts';
import type { PlacedFault } from '../config/loaded.ts';
import { readFileText } from '../config/read-file.ts';
import type { MapNode } from '../config/tree.ts';
import { readYaml } from '../config/yaml.ts';
import { mergeOver } from './merge.ts';
import { inSpecWords } from './spelling.ts';

export interface ServiceFiles {
  /** All files as one, in the spec's words; empty where there are none. */
  tree: MapNode;
  /** Faults of the files as files; one that cannot be read is left out. */
  findings: PlacedFault[];
  /** Absolute. */
  files: string[];
}

/** Reads the service's own files in order, later ones over earlier ones. Never throws. */
export function readServiceFiles(names: readonly string[], cwd: string, env: Environment): ServiceFiles {
  const result: ServiceFiles = {
    tree: { kind: 'map', place: { file: names.at(-1) ?? '', line: 1, column: 1 }, entries: new Map() },
    findings: [],
    files: names.map((name) => resolve(cwd, name)),
  };
  names.forEach((name, index) => {
    const content = readFileText(result.files[index]!, name);
    if ('fault' in content) {
      result.findings.push(content.fault);
      return;
    }
    const { tree, faults } = readYaml(content.text, name, env);
    result.findings.push(...faults);
    if (tree) result.tree = mergeOver(result.tree, inSpecWords(tree));
  });
  return result;
}
