import { execFile } from 'node:child_process';
import { excerpt } from '../probe.ts';
import type { ReportFormat } from './block.ts';
import type { Verifiable, VerifyAnswer } from './evidence.ts';

interface Ended {
  status: number;
  stdout: string;
  stderr: string;
}

const maxOutputBytes = 16 << 20;
const shownBytes = 300;

/**
 * Has a tool verify one of its backups. Throws where it could not, as when its repository is locked: then nothing is
 * known of the backup.
 */
export async function verifyByTool(
  id: string,
  { format, argv }: NonNullable<Verifiable['tool']>,
): Promise<VerifyAnswer> {
  const ended = await run(argv);
  const answer = judges[format](id, ended);
  if (answer) return answer;
  const said = excerpt(`${ended.stderr}${ended.stdout}`, shownBytes);
  throw new Error(`${argv[0]}: exit status ${ended.status}: ${said}`);
}

/**
 * Runs it in the process group of the verifying process, so that it ends with it and has its priority. Throws if it
 * cannot be started, or is killed.
 */
function run([program = '', ...args]: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: maxOutputBytes }, (thrown, stdout, stderr) => {
      if (thrown && typeof thrown.code !== 'number') reject(thrown);
      else resolve({ status: Number(thrown?.code ?? 0), stdout, stderr });
    });
  });
}

/** What the output says of a backup; undefined where the tool could not verify it. */
type Judge = (id: string, ended: Ended) => VerifyAnswer | undefined;

const judges: Readonly<Record<ReportFormat, Judge>> = {
  pgbackrest: judgePgBackRest,
  barman: judgeBarman,
  walg: judgeStatus,
  json: judgeStatus,
};

/**
 * `pgbackrest verify --output=text --verbose` reads the whole repository, and ends with status 0 whatever it finds; it
 * lists the backups that are there.
 */
function judgePgBackRest(id: string, { status, stdout }: Ended): VerifyAnswer | undefined {
  if (status !== 0) return undefined;
  const listed = [...stdout.matchAll(/^ *backup: (\S+), status: (.+)$/gm)];
  const found = listed.find(([, label]) => label === id)?.[2];
  if (found?.startsWith('valid')) return { result: 'ok', msg: `pgbackrest verify: ${found}` };
  if (found !== undefined) return { result: 'corrupt', msg: `pgbackrest verify: ${found}` };
  // Without --verbose only backups with a fault are listed.
  if (/total WAL checked/.test(stdout) || listed.some(([, , what]) => what!.startsWith('valid')))
    return { result: 'corrupt', msg: `pgbackrest verify does not find ${id} in the repository` };
  return { result: 'unknown', msg: 'pgbackrest verify lists no backup; add --output=text --verbose' };
}

/** `barman verify-backup SERVER ID` runs pg_verifybackup; other errors have the same exit status. */
function judgeBarman(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return { result: 'ok', msg: 'barman verify-backup found no fault' };
  const said = `${stderr}\n${stdout}`;
  if (!said.includes('verify backup failure')) return undefined;
  const fault = /pg_verifybackup: error: (.+)/.exec(said)?.[1];
  return { result: 'corrupt', msg: fault ?? 'barman verify-backup found a fault' };
}

/** Of a program of one's own: 0 good, 1 damaged. */
function judgeStatus(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return { result: 'ok', msg: excerpt(stdout, shownBytes) || 'its tool found no fault' };
  if (status !== 1) return undefined;
  return { result: 'corrupt', msg: excerpt(stderr || stdout, shownBytes) || 'its tool found a fault' };
}
