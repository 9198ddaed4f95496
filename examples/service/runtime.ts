import type { Metrics } from './metrics.ts';
import type { Random } from './random.ts';
import type { Work } from './work.ts';

const MiB = 2 ** 20;

/** Memory and goroutines of one process: the heap fills with the work done and is collected now and then. */
export function createRuntime(metrics: Metrics, random: Random): Work {
  let inUseBytes = 40 * MiB;
  let heapBytes = 96 * MiB;
  metrics.add('svc_restarts', {}, 1);
  metrics.set('svc_gomaxprocs', {}, 4);
  metrics.add('svc_memory_num_gc', {}, 0);
  metrics.add('svc_memory_gc_pause_ms', {}, 0);

  return ({ workflows }) => {
    inUseBytes += Math.round(workflows * MiB * (0.2 + 0.1 * random.next()));
    if (inUseBytes > 90 * MiB) {
      inUseBytes = random.integer(36 * MiB, 44 * MiB);
      metrics.add('svc_memory_num_gc', {});
      metrics.add('svc_memory_gc_pause_ms', {}, random.longTail(0.6));
    }
    heapBytes = Math.max(heapBytes, inUseBytes + 4 * MiB);
    metrics.set('svc_num_goroutines', {}, random.integer(380, 420));
    metrics.set('svc_memory_allocated', {}, Math.round(inUseBytes * 0.95));
    metrics.set('svc_memory_heap', {}, heapBytes);
    metrics.set('svc_memory_heapinuse', {}, inUseBytes);
    metrics.set('svc_memory_heapidle', {}, heapBytes - inUseBytes);
    metrics.set('svc_memory_stack', {}, random.integer(3 * MiB, 4 * MiB));
    return [];
  };
}
