import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CannotLook } from './rehearsal.ts';
import type { Sandbox } from './sandbox.ts';

// Gives a throwaway server the archived log of PostgreSQL, and stops the recovery before a part that must not be replayed.

/**
 * Returns the setting `restore_command`. It fetches a segment from an archive: a plain copy, a copy in a folder as Barman stores
 * them, or a gzip file, which it unpacks.
 */
export async function restoreCommand(directory: string, sandbox: Sandbox): Promise<string> {
  const script = join(sandbox.path, 'fetch');
  const readable =
    // The segment is in the directory itself, or in the folder of its log file.
    `f="$1/$2"; [ -e "$f" ] || [ -e "$f.gz" ] || f="$1/$(printf %.16s "$2")/$2"`;
  const lines = [readable, '[ ! -e "$f" ] || exec cp "$f" "$3"', '[ -e "$f.gz" ] && gzip -dc "$f.gz" > "$3"'];
  writeFileSync(script, `${lines.join('\n')}\n`, { mode: 0o644 });
  const newest = readdirSync(directory)
    .filter((name) => /^[0-9A-F]{24}/.test(name))
    .sort()
    .at(-1);
  if (newest !== undefined) {
    await sandbox.run(['test', '-r', join(directory, newest)]).catch(() => {
      throw new CannotLook(`the user that the throwaway server runs as cannot read ${directory}`);
    });
    if (!/^[0-9A-F]{24}(?:\.gz)?(?:\.\w+\.backup)?$/.test(newest))
      throw new CannotLook(
        `${directory} is the archive of a backup tool, and only that tool can restore from it`,
      );
  }
  return `sh ${shellWord(script)} ${shellWord(directory)} %f %p`;
}

/** Quotes a word for a shell command within a setting, in which % begins a placeholder. */
const shellWord = (text: string) => `'${text.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`;

/**
 * Looks for the creation of a tablespace in a segment. Parameters: $1 is the directory of pg_waldump, $2 a working directory, $3
 * the name of the segment, $4 its path. The previous segment stays in the working directory, because a record may begin there. An
 * exit status above 125 ends the recovery.
 */
const guardScript = `
case $3 in *[!0-9A-F]*) exit 0 ;; esac
mkdir -p "$2/log" && { ln "$4" "$2/log/$3" || cp "$4" "$2/log/$3"; } || exit 126
size=$(wc -c < "$4"); place=\${3#????????}
start=$(( (0x\${place%????????} << 32) + 0x\${place#????????} * size - 65536 ))
from=$(printf %X/%X $((start >> 32)) $((start & 0xFFFFFFFF)))
dump() { "$programs/pg_waldump" --rmgr=Tablespace --path="$log" "$@" 2> /dev/null; [ $? -le 125 ] || exit 126; }
programs=$1 log=$2/log
found=$(dump "$3" && dump --timeline=$((0x\${3%????????????????})) --start="$from") || exit 126
found=$(printf %s "$found" | sed -n 's/.*desc: CREATE [0-9]* //p' | head -n 1)
[ -z "$found" ] || { printf %s "$found" > "$2/tablespace"; exit 126; }
for old in "$log"/*; do [ "$old" = "$log/$3" ] || rm "$old"; done
`;

interface GuardedLog {
  /** The setting `restore_command`. */
  fetch: string;
  /** Why the guard ended the recovery; undefined if it did not. */
  fault(): CannotLook | undefined;
}

/**
 * Guards against a log that creates a tablespace. Such a log names a directory of the store. A server that replays it links that
 * directory, and truncates and overwrites the files of the store in it (PostgreSQL's documentation, Continuous Archiving,
 * Caveats). `fetch` is a `restore_command`. Throws CannotLook if the data directory already contains such a log.
 */
export async function guardLog(
  { programs, data, fetch }: { programs: string; data: string; fetch: string },
  sandbox: Sandbox,
): Promise<GuardedLog> {
  if (!existsSync(join(programs, 'pg_waldump')))
    throw new CannotLook(`${programs} has no pg_waldump, which tells whether the log creates a tablespace`);
  const script = join(sandbox.path, 'guard');
  writeFileSync(script, guardScript, { mode: 0o644 });
  const words = ['sh', script, programs, sandbox.scratch];
  const found = join(sandbox.scratch, 'tablespace');
  const fault = () =>
    existsSync(found)
      ? new CannotLook(
          `the log creates a tablespace in ${readFileSync(found, 'utf8')}, where a throwaway server would write into the files of the store; make a base backup that has it`,
        )
      : undefined;
  const log = join(data, 'pg_wal');
  const names = readdirSync(log).filter((name) => /^[0-9A-F]{24}$/.test(name));
  for (const name of names.sort())
    await sandbox.run([...words, name, join(log, name)]).catch((thrown) => {
      throw fault() ?? thrown;
    });
  return { fetch: `${fetch} && ${words.map(shellWord).join(' ')} %f %p`, fault };
}
