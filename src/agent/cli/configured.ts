import { AgentError, faultLine } from '../../core/errors.ts';
import { loadConfig } from '../config/load.ts';
import type { LoadRequest, ReadyConfig } from '../config/loaded.ts';
import type { Io } from './io.ts';

/** The options of `configurationOptions` as they were given. */
export interface ConfigurationValues {
  config?: string | undefined;
  'service-config'?: string[] | undefined;
  role?: string[] | undefined;
}

export function loadRequest(values: ConfigurationValues, io: Io): LoadRequest {
  return {
    file: values.config,
    serviceConfig: values['service-config'] ?? [],
    roles: values.role ?? [],
    env: io.env,
    cwd: io.cwd,
  };
}

/** Loads the configuration of a command; prints every fault of it and throws `config_invalid` if there is any. */
export async function configured(values: ConfigurationValues, io: Io): Promise<ReadyConfig> {
  const loaded = await loadConfig(loadRequest(values, io));
  if (loaded.config && loaded.faults.length === 0) return { ...loaded, config: loaded.config };
  for (const fault of loaded.faults) io.stderr(`${faultLine(fault)}\n`);
  const count = loaded.faults.length;
  throw new AgentError('config_invalid', {
    where: 'configuration',
    what: `${count} ${count === 1 ? 'fault' : 'faults'}, listed above`,
    allowed: 'svc-agent check shows them again',
  });
}
