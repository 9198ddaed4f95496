import type { AgentConfig, MetricsConfig } from './config/types.ts';

/** A `metrics` block and the services whose series are reported there. */
export interface Block {
  /** Its place in the configuration; what its listener is called in the log. */
  readonly name: string;
  readonly metrics: MetricsConfig;
  /** Whether series of this service (`''`: of none) are reported here. */
  shows(service: string): boolean;
}

/**
 * One block per selected service that has its own, and the top-level one for everything else: what belongs to
 * no service, and lines of a shared file that name no role.
 */
export function blocksOf(config: AgentConfig): readonly Block[] {
  const own = config.services.filter((service) => service.selected && service.metrics);
  const apart = new Set(own.map((service) => service.name));
  const shared: Block = { name: 'metrics', metrics: config.metrics, shows: (service) => !apart.has(service) };
  return [
    shared,
    ...own.map(
      ({ name, metrics }): Block => ({
        name: `services.${name}.metrics`,
        metrics: metrics!,
        shows: (service) => service === name,
      }),
    ),
  ];
}

/** The block that reports a service's series. */
export function blockOf(blocks: readonly Block[], service: string): Block {
  return blocks.find((block) => block.shows(service))!;
}
