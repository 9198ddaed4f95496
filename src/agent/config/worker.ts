import type { LoadRequest } from './types.ts';
import { validate } from './validate.ts';

// A process of its own, so that the memory of zod and yaml is released. It ends after its answer.
process.once('message', async (request: LoadRequest) => {
  process.send?.(await validate(request), () => process.disconnect());
});
