import nodeFs, { type FileHandle } from 'node:fs/promises';
import { constants } from 'node:os';
import type { StateFs } from '../../../src/agent/state/snapshot-files.ts';

export type Operation =
  | 'mkdir'
  | 'open'
  | 'write'
  | 'datasync'
  | 'sync'
  | 'close'
  | 'rename'
  | 'rm'
  | 'readdir'
  | 'stat';

/** The real file system, except for operations that a plan refuses. */
export interface FaultyFs extends StateFs {
  /** The system's code with which an operation must fail, or undefined to allow it. */
  plan: (operation: Operation, path: string) => string | undefined;
}

function systemError(code: string, operation: string): Error {
  const errno = -constants.errno[code as keyof typeof constants.errno];
  return Object.assign(new Error(`${code}: made to fail, ${operation}`), { code, errno });
}

export function faultyFs(): FaultyFs {
  const check = (operation: Operation, path: unknown) => {
    const code = faulty.plan(operation, String(path));
    if (code) throw systemError(code, operation);
  };
  /** A refused write leaves half of its bytes, as on a full disk. */
  const wrap = (handle: FileHandle, path: string): FileHandle =>
    new Proxy(handle, {
      get(target, key) {
        if (key === 'write') {
          return async (bytes: Uint8Array, at: number, length: number) => {
            const code = faulty.plan('write', path);
            if (code) await target.write(bytes, at, Math.floor(length / 2));
            if (code) throw systemError(code, 'write');
            return target.write(bytes, at, length);
          };
        }
        if (key === 'close') {
          return async () => {
            await target.close();
            check('close', path);
          };
        }
        if (key === 'datasync' || key === 'sync') {
          return async () => {
            check(key, path);
            await target[key]();
          };
        }
        const member = Reflect.get(target, key, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  const guarded = <K extends 'mkdir' | 'readdir' | 'rename' | 'rm' | 'stat'>(operation: K): StateFs[K] => {
    const real = nodeFs[operation] as (...args: unknown[]) => Promise<unknown>;
    return (async (...args: unknown[]) => {
      check(operation, args[0]);
      return real(...args);
    }) as StateFs[K];
  };
  const faulty: FaultyFs = {
    plan: () => undefined,
    mkdir: guarded('mkdir'),
    readdir: guarded('readdir'),
    rename: guarded('rename'),
    rm: guarded('rm'),
    stat: guarded('stat'),
    async open(path, flags, mode) {
      check('open', path);
      return wrap(await nodeFs.open(path, flags, mode), String(path));
    },
  };
  return faulty;
}
