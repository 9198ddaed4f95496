import { loadConfig } from '../src/agent/config/load.ts';
import type { AgentConfig } from '../src/agent/config/types.ts';
import { createReadSecret } from '../src/agent/read-secret.ts';
import { createRolePipeline, type RolePipeline } from '../src/agent/role-pipeline.ts';
import type { Clock } from '../src/core/ports.ts';
import { createRegistry, type Registry } from '../src/core/registry/registry.ts';
import { wideLimits } from './registry.ts';
import { silentLog } from './statsd.ts';
import { agentFile } from './unit/config/agent-file.ts';

/** The sources of roles with a separate registry. */
export function openRoles(clock: Clock): { registry: Registry; roles: RolePipeline } {
  const registry = createRegistry({ limits: wideLimits }, { clock });
  const roles = createRolePipeline({
    registry,
    vocabularies: async () => [],
    ownListeners: () => [],
    mark: 'agent-1',
    readSecret: createReadSecret({}),
    onKernelDrops: () => {},
    onPage: () => {},
    clock,
    log: silentLog,
  });
  return { registry, roles };
}

/** A configuration with these roles, or a whole configuration as text. Throws its faults. */
export async function configOf(content: object | string, cwd = '/'): Promise<AgentConfig> {
  const text = typeof content === 'string' ? content : JSON.stringify({ services: content });
  const { config, faults } = await loadConfig({ file: agentFile(text), env: {}, cwd });
  if (!config || faults.length > 0) throw new Error(JSON.stringify(faults));
  return config;
}
