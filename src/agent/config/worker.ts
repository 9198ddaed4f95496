import type { LoadRequest } from './types.ts';
import { validate } from './validate.ts';

// A separate process, so that the memory of zod and yaml is released. It exits after its answer.
process.once('message', async (request: LoadRequest) => {
  process.send?.(await validate(request), () => process.disconnect());
});
