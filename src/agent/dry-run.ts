import type { Clock, Log } from '../core/ports.ts';
import { createRegistry } from '../core/registry/registry.ts';
import { planProbes } from '../probes/plan.ts';
import { readVocabularies } from '../sources/vocabularies.ts';
import { type AgentConfig, blockOf, blocksOf } from './config/types.ts';
import { shippedFolder } from './installation.ts';
import { registrySettings } from './intakes.ts';
import { checkLogs } from './log-pipeline.ts';
import { createReadSecret } from './read-secret.ts';
import { checkReporters } from './reporters.ts';
import { checkRoleSources } from './role-sources.ts';

/** Discards log entries, because nothing that is built here runs. */
const silent: Log = { write() {}, named: () => silent };

/**
 * Builds everything that a start builds from a configuration (sources, log rules and patterns, probes, reporters), with
 * the same code and on a separate registry, and discards it. It binds no address, reads no log and sends nothing.
 * Throws what the start would throw.
 */
export async function dryRun(config: AgentConfig, { clock }: { clock: Clock }): Promise<void> {
  const registry = createRegistry(registrySettings(config), { clock });
  const deps = { registry, readSecret: createReadSecret({}), clock, log: silent, drops: registry.drops };
  const blocks = blocksOf(config);
  const shipped = () => readVocabularies(shippedFolder('vocabularies'));
  for (const [place, service] of config.services.entries()) {
    if (!service.selected || !(service.scrape || service.statsd)) continue;
    const options = { service, place, block: blockOf(blocks, service.name) };
    await checkRoleSources(options, {
      ...deps,
      vocabularies: shipped,
      ownListeners: () => [],
      mark: '',
      onKernelDrops: () => {},
      onPage: () => {},
    });
  }
  checkLogs(config, registry, deps);
  planProbes(config);
  await checkReporters(config, deps);
}
