import { playKind } from '../../rotation-kinds.ts';

playKind('links of Kubernetes');
