import { playKind } from '../../rotation-kinds.ts';

playKind('unfinished archives of kubelet');
