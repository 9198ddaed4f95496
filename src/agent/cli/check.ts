import { faultLine } from '../../core/errors.ts';
import { notAvailable } from '../config/available.ts';
import { loadConfig } from '../config/load.ts';
import type { Loaded } from '../config/loaded.ts';
import type { AgentConfig } from '../config/types.ts';
import { configurationOptions, parseCommand } from './arguments.ts';
import type { LiveReport } from './check-live.ts';
import { checkReport } from './check-report.ts';
import { loadRequest } from './configured.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent check [-c FILE] [--service-config FILE]... [--role ROLE]... [--live] [--json]

Judges the configuration, and the service's own files by the specification, and shows what would run.
--live also looks once at each role's page, and lists the metrics of the catalog that it does not send and
those it sends that no vocabulary maps.
Exit status: 0 well; 1 a fault in the service's own files, a secret that is not there, or with --live a page that
cannot be had; 2 an invalid configuration.
`;

/** `svc-agent check`: every fault at once, then what would run. */
export async function check(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('check', args, {
    ...configurationOptions,
    live: { type: 'boolean' },
  });
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  const loaded = await loadConfig(loadRequest(values, io));
  const live = values.live && loaded.config ? await lookAt(loaded.config, io) : undefined;
  if (values.json) io.stdout(`${JSON.stringify({ ...asJson(loaded), live })}\n`);
  else {
    for (const fault of loaded.faults) io.stderr(`${faultLine(fault)}\n`);
    io.stdout(checkReport(loaded, io.colour));
    if (live) io.stdout((await import('./check-live.ts')).liveText(live));
  }
  if (loaded.faults.length > 0) return 2;
  return loaded.findings.length > 0 || live?.some(({ failure }) => failure !== undefined) ? 1 : 0;
}

/** What a look at pages needs is loaded only for it. */
async function lookAt(config: AgentConfig, io: Io): Promise<LiveReport[]> {
  return (await import('./check-live.ts')).lookLive(config, io);
}

/** The outcome without the configuration itself, which holds secrets. */
function asJson({ config, faults, warnings, findings, discovered }: Loaded) {
  return {
    ok: faults.length === 0 && findings.length === 0,
    faults,
    warnings,
    findings,
    discovered,
    notAvailable: config ? notAvailable(config) : [],
    roles: config?.roles ?? [],
    scope: config?.scope,
    instance: config?.instance,
    stateDirectory: config?.stateDirectory,
  };
}
