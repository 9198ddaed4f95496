import type { z } from 'zod';
import { roles as catalogRoles } from '../../core/catalog.ts';
import { nearest } from '../../core/errors.ts';
import {
  faultAt,
  haveSecret,
  isWithin,
  keyPlaceOf,
  mayBeSecret,
  nodeAt,
  nodeWord,
  pathText,
  placedFault,
  placeOf,
  placeText,
  shownPath,
  type TreeNode,
  type TreePath,
} from './tree.ts';
import type { PlacedFault } from './types.ts';

type Issue = z.core.$ZodIssue;

/** zod's names of types in plain words. */
const typeWords: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number; use digits, such as 10',
  int: 'a whole number; use a number without a decimal point',
  boolean: 'a boolean; use true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** Prefix of a message that lists the known keys; zod has them only while it validates. */
const knownKeys = 'unknown key; ';

const listed = (words: readonly unknown[], last: string): string => {
  const texts = words.map(String);
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} ${last} ${texts.at(-1)}`;
};

const units: Readonly<Record<string, string>> = { array: ' entries', string: ' characters' };

/** The message for one of zod's issues, as `what is wrong; what is allowed`. Messages in the schema take precedence. */
export const errorWords = (issue: z.core.$ZodRawIssue): string | undefined => {
  switch (issue.code) {
    case 'invalid_type':
      return `not ${typeWords[issue.expected] ?? issue.expected}${shapeHint(issue)}`;
    case 'invalid_value':
      return `unknown value; use ${listed(issue.values, 'or')}`;
    case 'too_small':
      if (issue.origin === 'array') return 'empty; give at least one entry';
      if (issue.origin === 'string') return 'empty; give a text';
      return `too small; use ${issue.minimum} or more`;
    case 'too_big':
      return `too large; use at most ${issue.maximum}${units[issue.origin] ?? ''}`;
    case 'unrecognized_keys': {
      return knownKeys + keysOf(issue.inst).join(' ');
    }
    default:
      return undefined;
  }
};

const keysOf = (schema: unknown): string[] =>
  Object.keys((schema as z.core.$ZodObject | undefined)?._zod.def.shape ?? {});

/** How many keys a message lists at most. */
const mostListed = 8;

/** An example for a value of the wrong type. */
function shapeHint({ expected, input, inst }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string {
  if (expected === 'string' && (typeof input === 'number' || typeof input === 'boolean'))
    return '; put it in quotes';
  if (expected === 'array')
    return `; use a list, such as ${typeof input === 'string' && /^[\w/.][\w./*-]{0,80}$/.test(input) ? `[${input}]` : '[a, b]'}`;
  if (typeof input === 'string' && /^\w+:\S/.test(input) && expected === 'object')
    return '; put a space after the colon';
  if (expected !== 'object' || input === undefined) return '';
  const keys = keysOf(inst);
  const others = keys.length > mostListed ? ['…'] : [];
  return keys.length > 0
    ? `; use keys below it: ${[...keys.slice(0, mostListed), ...others].join(', ')}`
    : '';
}

/** zod's issues as faults with places; `tree` is the tree that was checked. */
export function issueFaults(issues: readonly Issue[], tree: TreeNode, above: TreePath = []): PlacedFault[] {
  const faults = issues.flatMap((issue) =>
    issueFault(issue, tree, [...above, ...(issue.path as (string | number)[])]),
  );
  // A misspelt key is not reported as missing, too.
  const misspelt = new Set(
    faults.flatMap(({ path, allowed }) => {
      const meant = /^did you mean ([^.?]+)\?$/.exec(allowed ?? '')?.[1];
      return meant ? [path.replace(/[^.]*$/, '') + meant] : [];
    }),
  );
  return faults.filter(({ what, path }) => what !== 'missing' || !misspelt.has(path));
}

function issueFault(issue: Issue, tree: TreeNode, path: TreePath): PlacedFault[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => unknownKey(key, issue.message, tree, path));
  if (issue.code === 'invalid_union') return unionFaults(issue, tree, path);
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  const node = nodeAt(tree, ...path);
  if (node === undefined && issue.code !== 'custom') {
    return [placedFault(placeOf(tree, path), path, missingText(issue, message))];
  }
  if (issue.code === 'invalid_key') return [placedFault(keyPlaceOf(tree, path), path, message, path.at(-1))];
  if (node && node.kind !== 'scalar' && issue.code === 'invalid_type') {
    return [placedFault(placeOf(tree, path), path, `${nodeWord(node)}, ${message}`)];
  }
  return [faultAt(tree, path, message)];
}

function missingText(issue: Issue, message: string): string {
  if (issue.code === 'invalid_type' && issue.message.startsWith('not a') && !message.includes('; ')) {
    return `missing; set it to ${message.slice('not '.length)}`;
  }
  const cut = message.indexOf('; ');
  return cut < 0 ? 'missing' : `missing${message.slice(cut)}`;
}

function unknownKey(key: string, message: string, tree: TreeNode, path: TreePath): PlacedFault {
  const known = message.slice(knownKeys.length).split(' ');
  const near = elsewhere(key, known) ?? nearest(key, known);
  const isService = path.length === 2 && path[0] === 'services' && catalogRoles.some((role) => role === key);
  const allowed = isService
    ? `a service, not a key of one; indent it less, as services.${key}`
    : near
      ? `did you mean ${near}?`
      : `known are ${listed(known, 'and')}`;
  const place = keyPlaceOf(tree, [...path, key]);
  // A key that resembles no other may be a secret that was written one line too high.
  const isShown = near !== undefined || !(mayBeSecret(path) || haveSecret(known));
  const fault = placedFault(place, path, `unknown key; ${allowed}`);
  const [above, own] = [shownPath(path), shownPath([isShown ? key : '…'])];
  const where = above === '' || own.startsWith('[') ? above + own : `${above}.${own}`;
  return { ...fault, where: `${placeText(place)}: ${where}`, path: where };
}

/** Other names of keys: for reporters those in the service's own files, for TLS files those in other programs. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  prometheus: ['pullmetrics'],
  statsd: ['pushmetrics'],
  m3: ['hostedmetrics'],
  cert: ['certFile'],
  certificate: ['certFile'],
  key: ['keyFile'],
  ca: ['caFile', 'clientCaFile'],
  username: ['user'],
};

/** For keys that are easily written too high: the block that each belongs to. */
const blocksOfKeys: Readonly<Record<string, string>> = {
  pullmetrics: 'metrics',
  pushmetrics: 'metrics',
  hostedmetrics: 'metrics',
  reportingInterval: 'metrics',
  tags: 'metrics',
  level: 'log',
  encoding: 'log',
  outputFile: 'log',
  paths: 'logs',
  rules: 'logs',
  logs: 'services.<role>',
  scrape: 'services.<role>',
  health: 'services.<role>',
  statsd: 'services.<role>',
};

/** The key that was probably meant: a key of another block, or the name that the key has here. */
function elsewhere(key: string, known: readonly string[]): string | undefined {
  const names = Object.hasOwn(otherNames, key) ? otherNames[key]! : [];
  const renamed = names.find((name) => known.includes(name));
  if (renamed) return renamed;
  const block = Object.hasOwn(blocksOfKeys, key) ? blocksOfKeys[key] : undefined;
  return block && known.includes(block.split('.')[0]!) ? `${block}.${key}` : undefined;
}

/**
 * The faults of a union: the faults of the alternative that accepts the type of the value, or, if several accept it, of the
 * alternative with the fewest faults.
 */
function unionFaults(issue: z.core.$ZodIssueInvalidUnion, tree: TreeNode, path: TreePath): PlacedFault[] {
  const fitting = issue.errors.filter(
    (issues) => !issues.some(({ code, path: below }) => code === 'invalid_type' && below.length === 0),
  );
  const [best] = [...fitting].sort((one, other) => one.length - other.length);
  if (best) return issueFaults(best, tree, path);
  const types = issue.errors.flat().flatMap((one) => (one.code === 'invalid_type' ? [one.expected] : []));
  const words = [...new Set(types)].map((type) => (typeWords[type] ?? type).split('; ')[0]);
  const node = nodeAt(tree, ...path);
  if (!node) return [placedFault(placeOf(tree, path), path, `missing; set it to ${listed(words, 'or')}`)];
  const form = issue.errors.flat().find(({ message }) => message.includes('; use the form'))?.message;
  const isBare = node?.kind === 'scalar' && ['number', 'boolean'].includes(typeof node.value);
  const hint = form
    ? form.slice(form.indexOf('; '))
    : isBare && types.includes('string')
      ? '; put it in quotes'
      : '';
  const isNot = words.length > 1 ? `neither ${listed(words, 'nor')}` : `not ${listed(words, 'or')}`;
  if (node.kind === 'scalar') return [faultAt(tree, path, `${isNot}${hint}`)];
  return [placedFault(placeOf(tree, path), path, `${nodeWord(node)}, not ${listed(words, 'or')}`)];
}

const keysOfServices: ReadonlySet<string> = new Set(['logs', 'health', 'scrape', 'statsd', 'vocabulary']);

/** Names below `services` that are keys of the service above them, indented too little. Such a name without faults is a service. */
export function misplacedNames(faults: readonly PlacedFault[], tree: TreeNode): string[] {
  const isFaulty = (name: string) => faults.some(isBelow(name));
  return namesOfServices(tree).filter((name) => keysOfServices.has(name) && isFaulty(name));
}

const namesOfServices = (tree: TreeNode): string[] => {
  const services = nodeAt(tree, 'services');
  return services?.kind === 'map' ? [...services.entries.keys()] : [];
};

const isBelow = (name: string) => (fault: PlacedFault) => isWithin(fault.path, pathText(['services', name]));

/** The faults below each misplaced name, merged into one: the key was probably meant for the service above it. */
export function misplacedKeys(faults: readonly PlacedFault[], tree: TreeNode): PlacedFault[] {
  const names = namesOfServices(tree);
  const meant = names.filter((name) => !keysOfServices.has(name));
  return misplacedNames(faults, tree).reduce(
    (left, name) => {
      const above =
        meant.findLast((one) => names.indexOf(one) < names.indexOf(name)) ?? meant[0] ?? 'frontend';
      const message = `a key of a service, not a service; indent it below services.${above}`;
      const path = ['services', name];
      return [
        ...left.filter((fault) => !isBelow(name)(fault)),
        placedFault(keyPlaceOf(tree, path), path, message),
      ];
    },
    [...faults],
  );
}
