/** `constants` of `node:fs`. */
interface OpenFlags {
  O_RDONLY: number;
  O_NONBLOCK: number;
}

interface Stats {
  isFile(): boolean;
}

/** `open` and `constants` of `node:fs/promises`. */
interface FileAccess {
  constants: OpenFlags;
  open(
    path: string,
    flags: number,
  ): Promise<{ stat(): Promise<Stats>; readFile(): Promise<Buffer>; close(): Promise<void> }>;
}

/** Functions and `constants` of `node:fs`. */
interface SyncFileAccess {
  constants: OpenFlags;
  openSync(path: string, flags: number): number;
  fstatSync(descriptor: number): Stats;
  readFileSync(descriptor: number): Buffer;
  closeSync(descriptor: number): void;
}

/**
 * Files of secrets and certificates. Even opening a pipe in the place of such a file would block a thread until somebody writes
 * to the pipe. A device may have no end. The readers throw the file system's error, or `not a regular file`.
 */
const notRegular = (): Error => {
  const what = 'not a regular file';
  return Object.assign(new Error(what), { code: what });
};

/** Reads regular files only. */
export const regularFileReader =
  ({ open, constants }: FileAccess) =>
  async (path: string): Promise<Buffer> => {
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await handle.stat()).isFile()) throw notRegular();
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  };

/** Reads regular files only, synchronously. */
export const regularFileReaderSync =
  ({ openSync, fstatSync, readFileSync, closeSync, constants }: SyncFileAccess) =>
  (path: string): Buffer => {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(descriptor).isFile()) throw notRegular();
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  };
