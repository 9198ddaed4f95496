import { onTestFinished } from 'vitest';
import { folder } from './run-folder.ts';

/** Creates a folder that is removed after the test, or after the file if `after` is `afterAll`. */
export function newFolder(after: (remove: () => void) => void = onTestFinished): string {
  const { path, remove } = folder();
  after(remove);
  return path;
}
