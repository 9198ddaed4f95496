import { usageError } from '../core/errors.ts';
import { objectStoreAddress } from '../core/text-formats.ts';
import { shellText } from './recovery/commands.ts';

/** Off-site copies of `svc-agent backup plan`: the options of rclone, and what the agent observes. */

export interface OffsiteTarget {
  /** The destination of rclone: a directory, or a remote as `REMOTE:BUCKET/PATH`. */
  target: string;
  /**
   * The region of an S3-compatible bucket. If it is set, the jobs define the remote themselves, and the agent observes the
   * copies.
   */
  region?: string;
  /** URL of the object store; the default is Amazon S3. */
  endpoint?: string;
}

export interface OffsiteCopies {
  /** Notes for people, without the comment sign. */
  notes: readonly string[];
  /** Shell lines that copy a file, or the content of a folder, to a place below the folder of the job. */
  copy(job: string, what: string, below?: string): readonly string[];
  /** Like `copy`, for each folder that matches a shell pattern; the folder is `$copy` in `below`. */
  copyEach(job: string, folders: string, below: string): readonly string[];
  /** The key `offsite` of the job’s entry; nothing if the agent cannot see the copies. */
  observed(job: string, below?: string): { offsite?: object };
}

/** Throws AgentError `usage` if the other options do not fit the target. */
export function checkOffsite({ target, region, endpoint }: Partial<OffsiteTarget>): void {
  const refuse = (what: string, got: string | undefined, allowed: string) => {
    throw usageError('svc-agent backup plan', what, got, allowed);
  };
  if (endpoint !== undefined && region === undefined)
    refuse('--endpoint without --region', endpoint, 'add the region that requests are signed for');
  for (const [option, value] of Object.entries({ offsite: target, region, endpoint }))
    if (value === '') refuse(`--${option} is empty`, value, 'give a value, or leave the option out');
  if (endpoint !== undefined && !objectStoreAddress.read(endpoint))
    refuse(
      '--endpoint is not that of an object store',
      endpoint,
      'use the form https://s3.example.com, host or host:port',
    );
  if (region === undefined) return;
  if (target === undefined) refuse('--region without --offsite', region, 'add --offsite REMOTE:BUCKET/PATH');
  else if (!bucketTarget.test(target))
    refuse(
      '--offsite is not a bucket',
      target,
      'use REMOTE:BUCKET/PATH, with a REMOTE of letters and digits',
    );
}

/** A word for a shell command. */
export const quoted = (text: string): string => shellText([text]);

/** rclone reads a remote from the environment if the remote's name may be part of the name of a variable. */
const bucketTarget = /^(?<remote>[A-Za-z0-9_]+):(?<bucket>[^/:]+)(?:\/(?<path>.*?))?\/*$/;

export function offsiteOf(given: OffsiteTarget | undefined): OffsiteCopies {
  const target = given && withoutSlash(given.target);
  const place = (job: string) => (target?.endsWith(':') ? `${target}${job}` : `${target ?? 'TARGET'}/${job}`);
  const line = (job: string, what: string, below = '') =>
    `rclone copy ${what} ${quoted(place(job))}${below && `"${below}"`}`;
  const before = given ? remoteOf(given) : [];
  return {
    notes: notesOf(given),
    copy: (job, what, below) =>
      given ? [...before, line(job, what, below)] : [`# ${line(job, what, below)}`],
    copyEach: (job, folders, below) =>
      given
        ? [...before, `for copy in ${folders}; do`, `  ${line(job, '"$copy"', below)}`, 'done']
        : [`# For each folder of ${folders}:`, `# ${line(job, '"$copy"', below)}`],
    observed: (job, below) => (given ? observedAt(given, below === undefined ? job : `${job}/${below}`) : {}),
  };
}

const withoutSlash = (target: string) => (target === '/' ? target : target.replace(/\/+$/, ''));

function notesOf(given: OffsiteTarget | undefined): readonly string[] {
  if (given === undefined)
    return ['--offsite REMOTE:BUCKET/PATH --region REGION adds copies to an S3-compatible bucket by rclone.'];
  const { target, region } = given;
  return [
    ...placeNotes(target, region),
    `To fetch a copy, with the variables of its job: rclone copy ${withoutSlash(target)}/JOB/NAME DIRECTORY`,
  ];
}

function placeNotes(target: string, region: string | undefined): readonly string[] {
  if (region !== undefined)
    return [
      `Copies go to ${target}. The bucket must exist. rclone and the agent read the keys from ~/.aws/credentials of`,
      'their users, from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the role of the machine or pod. They need',
      's3:PutObject and s3:GetObject (rclone), and s3:ListBucket (both).',
    ];
  if (target.startsWith('/')) return [`Copies go to ${target}, which must be mounted.`];
  return [
    `Copies go to ${target}, a remote in the rclone configuration of the user that runs the jobs (rclone config).`,
    'The agent observes copies only in a directory, or in an S3-compatible bucket (--region REGION).',
  ];
}

/** The remote as environment variables, so that no `rclone config` is necessary. */
function remoteOf({ target, region, endpoint }: OffsiteTarget): readonly string[] {
  const { remote } = bucketTarget.exec(target)?.groups ?? {};
  if (region === undefined || remote === undefined) return [];
  const settings = {
    TYPE: 's3',
    PROVIDER: endpoint === undefined ? 'AWS' : 'Other',
    ENV_AUTH: 'true',
    REGION: region,
    ...(endpoint !== undefined && { ENDPOINT: endpoint }),
    // Keys that may only write objects must not create a bucket, which rclone does before the first object.
    NO_CHECK_BUCKET: 'true',
  };
  const name = (key: string) => `RCLONE_CONFIG_${remote.toUpperCase()}_${key}`;
  return Object.entries(settings).map(([key, value]) => `export ${name(key)}=${quoted(value)}`);
}

function observedAt({ target, region, endpoint }: OffsiteTarget, below: string): { offsite?: object } {
  if (target.startsWith('/')) return { offsite: { directory: `${withoutSlash(target)}/${below}` } };
  const { bucket, path } = bucketTarget.exec(target)?.groups ?? {};
  if (region === undefined || bucket === undefined) return {};
  const prefix = `${path ? `${path}/` : ''}${below}/`;
  return {
    offsite: { objectStore: { ...(endpoint !== undefined && { endpoint }), region, bucket, prefix } },
  };
}
