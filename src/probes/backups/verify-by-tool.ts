import { execFile } from 'node:child_process';
import { excerpt } from '../probe.ts';
import { ok, type Verifiable, type VerifyAnswer } from './evidence.ts';
import type { ReportFormat } from './source-blocks.ts';

interface Ended {
  status: number;
  stdout: string;
  stderr: string;
}

const maxOutputBytes = 16 << 20;
const shownBytes = 300;

/**
 * Makes a tool verify one of its backups. Throws if the tool could not, for example because its repository is locked: then
 * nothing is known about the backup.
 */
export async function verifyByTool(
  id: string,
  { format, argv }: NonNullable<Verifiable['tool']>,
): Promise<VerifyAnswer> {
  const ended = await run(argv);
  const answer = answersOf[format](id, ended);
  if (answer) return answer;
  const said = excerpt(`${ended.stderr}${ended.stdout}`, shownBytes);
  throw new Error(`${argv[0]}: exit status ${ended.status}: ${said}`);
}

/**
 * Runs a program in the process group of the verifying process, so that it ends with that process and has its priority. Throws if
 * it cannot be started, or is killed.
 */
function run([program = '', ...args]: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: maxOutputBytes }, (thrown, stdout, stderr) => {
      if (thrown && typeof thrown.code !== 'number') reject(thrown);
      else resolve({ status: Number(thrown?.code ?? 0), stdout, stderr });
    });
  });
}

/** The answer that the output of a tool means; undefined if the tool could not verify the backup. */
type AnswerOf = (id: string, ended: Ended) => VerifyAnswer | undefined;

const answersOf: Readonly<Record<ReportFormat, AnswerOf>> = {
  pgbackrest: pgBackRestAnswer,
  barman: barmanAnswer,
  walg: statusAnswer,
  json: statusAnswer,
};

/**
 * The answer of `pgbackrest verify --output=text --verbose`, which reads the whole repository, ends with status 0 whatever it
 * finds, and lists the existing backups.
 */
function pgBackRestAnswer(id: string, { status, stdout }: Ended): VerifyAnswer | undefined {
  if (status !== 0) return undefined;
  const listed = [...stdout.matchAll(/^ *backup: (\S+), status: (.+)$/gm)];
  const found = listed.find(([, label]) => label === id)?.[2];
  if (found?.startsWith('valid')) return ok(`pgbackrest verify: ${found}`, {});
  if (found !== undefined) return { result: 'corrupt', msg: `pgbackrest verify: ${found}` };
  // Without --verbose only backups with a fault are listed.
  if (/total WAL checked/.test(stdout) || listed.some(([, , what]) => what!.startsWith('valid')))
    return { result: 'corrupt', msg: `pgbackrest verify does not find ${id} in the repository` };
  return { result: 'unknown', msg: 'pgbackrest verify lists no backup; add --output=text --verbose' };
}

/** The answer of `barman verify-backup SERVER ID`, which runs pg_verifybackup. Other errors have the same exit status. */
function barmanAnswer(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return ok('barman verify-backup found no fault', {});
  const said = `${stderr}\n${stdout}`;
  if (!said.includes('verify backup failure')) return undefined;
  const fault = /pg_verifybackup: error: (.+)/.exec(said)?.[1];
  return { result: 'corrupt', msg: fault ?? 'barman verify-backup found a fault' };
}

/** The answer according to the exit status of the user's own program: 0 is good, 1 is damaged. */
function statusAnswer(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return ok(excerpt(stdout, shownBytes) || 'its tool found no fault', {});
  if (status !== 1) return undefined;
  return { result: 'corrupt', msg: excerpt(stderr || stdout, shownBytes) || 'its tool found a fault' };
}
