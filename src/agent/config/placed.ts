import type { Fault } from '../../core/errors.ts';
import type { Place, PlacedFault } from './loaded.ts';
import { nodeAt, pathText, placeOf, type TreeNode, type TreePath } from './tree.ts';

/** Keys whose values are nobody's business, at any depth below them. */
const secretKeys: ReadonlySet<string> = new Set([
  'password',
  'basicAuthUsers',
  'basic_auth_users',
  'bearer',
  'token',
  'headers',
  'accessKey',
  'secretKey',
]);

/** Longer values would bury the message. */
const longestShown = 120;

const shown = (got: unknown): unknown =>
  typeof got === 'string' && got.length > longestShown ? `${got.slice(0, longestShown)}…` : got;

/** Whether a value at this path must not be shown. */
export function isSecret(path: TreePath): boolean {
  return path.some((step) => typeof step === 'string' && secretKeys.has(step));
}

export const placeText = ({ file, line, column }: Place): string => `${file}:${line}:${column}`;

/** `message` is `what is wrong; what is allowed`. A value at a secret path is left out. */
export function placedFault(place: Place, path: TreePath, message: string, got?: unknown): PlacedFault {
  const cut = message.indexOf('; ');
  const text = pathText(path);
  const fault: Fault = {
    where: text === '' ? placeText(place) : `${placeText(place)}: ${text}`,
    what: cut < 0 ? message : message.slice(0, cut),
  };
  if (got !== undefined && !isSecret(path)) fault.got = shown(got);
  if (cut >= 0) fault.allowed = message.slice(cut + 2);
  return { ...fault, place, path: text };
}

/** A fault of what stands at a path, with its value if it is a single one; where it is missing, without. */
export function faultAt(root: TreeNode, path: TreePath, message: string): PlacedFault {
  const node = nodeAt(root, ...path);
  const got = node?.kind === 'scalar' ? (node.written ?? node.value) : undefined;
  return placedFault(placeOf(root, path), path, message, got);
}
