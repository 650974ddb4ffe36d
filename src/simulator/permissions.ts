import { refuse } from './answer.ts';

/** What an API key may be used for. The API document says that there are permissions and not what they are called. */
export const PERMISSIONS = ['info', 'trade', 'deposit', 'withdraw'] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** As the live exchange answers a key that may not do what it asks for. */
export const FORBIDDEN = refuse(403, 4, 'This API Key is not authorized to perform this action.');
