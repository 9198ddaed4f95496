import { systemCode } from './errors.ts';

/** `mkdir` of the file system. */
type Mkdir<R> = (path: string, options: { mode: number; recursive: boolean }) => R;

/** The parent directory; undefined for the root. */
function parentOf(path: string): string | undefined {
  const above = path.replace(/\/+$/, '').replace(/[^/]+$/, '');
  return above === '' || above === path ? undefined : above;
}

/**
 * Creates a directory and its missing parents. Node's own `recursive` never returns if the kernel refuses a directory with ENOENT
 * in an existing one, as in /proc. Throws the file system's error.
 */
export async function makeDirectory(
  mkdir: Mkdir<Promise<unknown>>,
  path: string,
  mode: number,
): Promise<void> {
  const make = (): Promise<unknown> =>
    mkdir(path, { mode, recursive: false }).catch((thrown: unknown) => {
      // For a path that exists, `recursive` says whether it is a directory.
      if (systemCode(thrown) === 'EEXIST') return mkdir(path, { mode, recursive: true });
      throw thrown;
    });
  try {
    await make();
  } catch (thrown) {
    const above = parentOf(path);
    if (systemCode(thrown) !== 'ENOENT' || above === undefined) throw thrown;
    await makeDirectory(mkdir, above, mode);
    await make();
  }
}

/** Like `makeDirectory`, synchronously. */
export function makeDirectorySync(mkdir: Mkdir<unknown>, path: string, mode: number): void {
  const make = (): void => {
    try {
      mkdir(path, { mode, recursive: false });
    } catch (thrown) {
      if (systemCode(thrown) !== 'EEXIST') throw thrown;
      mkdir(path, { mode, recursive: true });
    }
  };
  try {
    make();
  } catch (thrown) {
    const above = parentOf(path);
    if (systemCode(thrown) !== 'ENOENT' || above === undefined) throw thrown;
    makeDirectorySync(mkdir, above, mode);
    make();
  }
}
