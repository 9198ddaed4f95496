import files from 'node:fs';
import { arch, cpus, freemem, loadavg, release, totalmem, type } from 'node:os';
import { dirname, resolve } from 'node:path';
import { systemClock } from '../../core/clock.ts';
import { AgentError, errorText } from '../../core/errors.ts';
import { hiderOf } from '../../core/known-secrets.ts';
import { withoutCredentials, withoutUrlSecrets } from '../../core/redacted.ts';
import { regularFileReaderSync } from '../../core/regular-file.ts';
import { readFileText } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import {
  isSecret,
  nodeAt,
  pathText,
  plainValue,
  type TreeNode,
  type TreePath,
  textAt,
} from '../config/tree.ts';
import { defaultAdminAddress, type Loaded } from '../config/types.ts';
import { readYaml } from '../config/yaml.ts';
import { version } from '../installation.ts';
import {
  ask,
  type KnownListener,
  listenerTarget,
  targetOf,
  targetOptions,
  targetUsage,
} from './agent-client.ts';
import { command, loadRequest } from './arguments.ts';
import { doctor } from './doctor.ts';
import { type Io, plainScreen } from './io.ts';

const usage = `Usage: svc-agent bundle [-c FILE] [--out FILE] [--url URL [--ca FILE | --insecure]]

Collects what a support case needs as one JSON document: versions, the machine, the configuration files, what check and
doctor say, and the status of the running agent, also if the configuration has faults. Secrets are replaced by
"<secret>", also where they occur inside other texts. The status contains messages and identifiers from the service's
log: read the document before you pass it on.
      --out FILE  write to FILE, with mode 0600, instead of printing
${targetUsage}Where a part cannot be collected, the document says why.
Exit status: 0 success; 1 the file cannot be written; 2 wrong usage, or the configuration has faults, which the
document lists.
`;

/** The text that replaces a secret. */
const mask = '<secret>';

const options = { ...targetOptions, out: { type: 'string' } } as const;

/** Runs `svc-agent bundle`. */
export const bundle = command({ name: 'bundle', usage, options }, async (values, io) => {
  const loaded = await loadConfig(loadRequest(values, io));
  const { faults, warnings, findings, discovered } = loaded;
  const secrets = new Set<string>();
  // A secret may be the value of a misspelt key, or be in the place of a map.
  const wrong = new Set(faults.map(({ path }) => path));
  const configuration = loaded.files.map((file) => ({
    file,
    content: configurationIn(file, { secrets, wrong, io }),
  }));
  const common = [
    ...(values.config === undefined ? [] : ['-c', values.config]),
    ...(values['service-config'] ?? []).flatMap((file) => ['--service-config', file]),
    ...(values.role ?? []).flatMap((role) => ['--role', role]),
  ];
  const target = () =>
    faults.length > 0 && values.url === undefined
      ? listenerTarget(adminIn(loaded, io), '/api/status', io)
      : targetOf(values, '/api/status', { ...io, stderr: () => {} });
  const parts = {
    createdAt: new Date(systemClock.nowMs()).toISOString(),
    version,
    machine: machine(io),
    configuration,
    check: redactedIn({ faults, warnings, findings, discovered }),
    doctor: redactedIn(await orWhy(() => diagnoses(common, io))),
    status: await orWhy(async () => ask(await target())),
  };
  const text = `${JSON.stringify(parts, masker(secrets), 2)}\n`;
  if (values.out === undefined || values.out === '-') io.stdout(text);
  else write(resolve(io.cwd, values.out), text);
  if (faults.length === 0) return 0;
  const count = `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`;
  io.stderr(
    `svc-agent: configuration: ${count}, listed in the document; the document is complete otherwise\n`,
  );
  return 2;
});

/**
 * The admin listener of a configuration with faults, for an agent that runs with an earlier one: the block `admin` if it has no
 * fault, otherwise the default.
 */
function adminIn({ faults, files }: Loaded, io: Io): KnownListener {
  const usual = { listenAddress: defaultAdminAddress };
  const [file] = files;
  const isUsable = !faults.some(({ path }) => path === '' || /^admin\b/.test(path));
  const content = file === undefined || !isUsable ? undefined : readFileText(file, file);
  if (content === undefined || 'fault' in content) return usual;
  const admin = nodeAt(readYaml(content.text, file!, io.env).tree, 'admin');
  const certFile = textAt(admin, 'tls', 'certFile') ?? textAt(admin, 'tls', 'cert_file');
  const written = (admin ? plainValue(admin) : {}) as Partial<KnownListener>;
  return { ...usual, ...written, tls: certFile === undefined ? undefined : { certFile } };
}

function write(path: string, text: string): void {
  try {
    files.writeFileSync(path, text, { mode: 0o600 });
  } catch (cause) {
    const fault = { where: path, what: `cannot be written, ${errorText(cause)}` };
    throw new AgentError('internal', { ...fault, allowed: 'name a file in a writable directory' }, cause);
  }
}

/** A part of the bundle, or the reason why it is missing. */
const orWhy = (part: () => Promise<unknown>): Promise<unknown> =>
  part().catch((thrown: unknown) => ({ unavailable: errorText(thrown) }));

const machine = ({ env }: Io) => ({
  ...{ node: process.version, system: type(), release: release(), arch: arch(), cpus: cpus().length },
  ...{ memoryBytes: totalmem(), freeBytes: freemem(), load: loadavg(), user: process.getuid?.() },
  // The values are left out because they may be secrets.
  variables: Object.keys(env).filter((name) =>
    /^(?:SVC_AGENT_|NODE_|STATE_DIRECTORY$|MALLOC_|UV_)/.test(name),
  ),
});

async function diagnoses(args: readonly string[], io: Io): Promise<unknown> {
  let text = '';
  const stdout = (more: string) => {
    text += more;
  };
  await doctor([...args, '--json'], { ...io, stdout, stderr: () => {}, screen: plainScreen });
  return JSON.parse(text);
}

/**
 * The content of a configuration file as data, without its secrets and without the faulty parts (`wrong`), both of which are
 * added to `secrets`.
 */
function configurationIn(file: string, { wrong, ...collecting }: Collecting & { wrong: Paths }): unknown {
  const content = readFileText(file, file);
  if ('fault' in content) return { unavailable: content.fault.what };
  const { tree, faults } = readYaml(content.text, file, collecting.io.env);
  if (!tree) return { unavailable: faults.map(({ what }) => what).join('; ') };
  const hide: Hide = {
    isHidden: (path, value) =>
      isSecret(path) ||
      isArgument(path, value) ||
      path.some((_, index) => wrong.has(pathText(path.slice(0, index + 1)))),
    add: (path, text) => collect(path, text, dirname(file), collecting),
  };
  return shownTree(tree, [], hide);
}

/**
 * Whether a value is an argument of a command that may contain a secret: anything but its program, the name of an option and a
 * placeholder.
 */
const isArgument = (path: TreePath, value: unknown): boolean =>
  Number(path.at(-1)) > 0 &&
  path.some((step) => /^(?:commands?|client)$/.test(String(step))) &&
  !/^(?:-[a-zA-Z]|--[a-z-]+|\{\w+\})$/.test(String(value));

/** Paths of faults, as texts. */
type Paths = ReadonlySet<string>;

interface Collecting {
  secrets: Set<string>;
  io: Io;
}

interface Hide {
  isHidden(path: TreePath, value: unknown): boolean;
  /** Adds a text that is hidden everywhere. */
  add(path: TreePath, text: string): void;
}

const readFile = regularFileReaderSync(files);

/** Adds a secret of the configuration: the text itself, or the content of the variable or file that it names. */
function collect(path: TreePath, text: string, directory: string, { secrets, io }: Collecting): void {
  const key = path.at(-1);
  secrets.add(text);
  if (key === 'env') secrets.add(io.env[text] ?? '');
  if (key !== 'file') return;
  try {
    secrets.add(readFile(resolve(directory, text)).toString().trim());
  } catch {
    // The check reports that the file cannot be read.
  }
}

/** The tree as data, without the hidden texts. */
function shownTree(node: TreeNode, path: TreePath, hide: Hide): unknown {
  if (node.kind === 'list') return node.items.map((item, index) => shownTree(item, [...path, index], hide));
  if (node.kind === 'map') {
    const entries = [...node.entries].map(([key, { node: value }]) => [
      key,
      shownTree(value, [...path, key], hide),
    ]);
    return Object.fromEntries(entries);
  }
  const { value, written } = node;
  if (hide.isHidden(path, value)) {
    if (value !== null) hide.add(path, String(value));
    return mask;
  }
  if (typeof value !== 'string') return value;
  const [, password] = /:\/\/[^/@\s]*?:([^/@\s]+)@/.exec(value) ?? [];
  if (password !== undefined) hide.add(path, password);
  return withoutCredentials(withoutUrlSecrets(written ?? value));
}

/** Replaces the secrets in every text of a JSON document, for `JSON.stringify`. */
function masker(secrets: ReadonlySet<string>): (key: string, value: unknown) => unknown {
  const masked = hiderOf([...secrets], mask);
  return (_, value) => (typeof value === 'string' ? masked(value) : value);
}

/** Data without the parts of its texts that may be secret, such as the query of a URL. */
const redactedIn = (data: unknown): unknown =>
  JSON.parse(
    JSON.stringify(data, (_, value) => (typeof value === 'string' ? withoutUrlSecrets(value) : value)),
  );
