import { parentPort, workerData } from 'node:worker_threads';
import { compare } from 'bcryptjs';
import type { PasswordQuestion } from './auth.ts';

const { password, hash } = workerData as PasswordQuestion;
parentPort?.postMessage(await compare(password, hash));
