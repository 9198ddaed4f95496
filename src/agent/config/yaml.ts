import { type Document, LineCounter, parseDocument } from 'yaml';
import type { Environment } from './expand.ts';
import type { Place, PlacedFault } from './loaded.ts';
import { placedFault } from './placed.ts';
import type { MapNode } from './tree.ts';
import { maxDepth, walkDocument } from './walk.ts';

export interface Read {
  /** Missing where the text is no YAML at all or not a map. */
  tree?: MapNode;
  faults: PlacedFault[];
}

const tooDeep = `nested too deeply; use at most ${maxDepth} levels`;

/** The parser's words where they would not help. */
const yamlFaults: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'key stands twice in one map; keep one of them',
  TAB_AS_INDENT: 'a tab as indentation; use spaces',
  MULTIPLE_DOCS: 'more than one document; use one file for each',
  RESOURCE_EXHAUSTION: tooDeep,
};

/** YAML 1.2 text as a tree with places. Never throws. */
export function readYaml(text: string, file: string, env: Environment): Read {
  const lines = new LineCounter();
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  let document: Document.Parsed;
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      version: '1.2',
      logLevel: 'error',
    });
  } catch {
    // The parser recurses; what overflows its stack is no configuration.
    return { faults: [placedFault(at(0), [], tooDeep)] };
  }
  const faults = [...document.errors, ...document.warnings].map(({ code, message, pos }) =>
    placedFault(at(pos[0]), [], yamlFaults[code] ?? `not YAML, ${oneLine(message)}`),
  );
  if (document.errors.some(({ code }) => code !== 'DUPLICATE_KEY')) return { faults };
  const tree = walkDocument(document, at, env, faults);
  return { tree, faults };
}

function oneLine(message: string): string {
  const line = message.split('\n')[0]!.trim().slice(0, 160).replaceAll(';', ',');
  return line.slice(0, 1).toLowerCase() + line.slice(1);
}
