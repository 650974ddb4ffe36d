import { expect, test } from 'vitest';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';

test.each([
  [
    '{"request":"/api/v4/trade-balance","nonce":1700000000000,"nonceWindow":true,"ticker":"BTC"}',
    'eyJyZXF1ZXN0IjoiL2FwaS92NC90cmFkZS1iYWxhbmNlIiwibm9uY2UiOjE3MDAwMDAwMDAwMDAsIm5vbmNlV2luZG93Ijp0cnVlLCJ0aWNrZXIiOiJCVEMifQ==',
    '81d08e8576e565acb3da4ec9125fc4d87683c97a183a6034f4cf1cd2f2c2b70af2da3aaba2241afa785d5fb7ad6e25d8dbe7049608f409487a56067703df9b92',
  ],
  [
    '{"request":"/api/v4/order/kill-switch","nonce":"1700000000000","market":"BTC_USDT","timeout":"60","types":["spot"]}',
    'eyJyZXF1ZXN0IjoiL2FwaS92NC9vcmRlci9raWxsLXN3aXRjaCIsIm5vbmNlIjoiMTcwMDAwMDAwMDAwMCIsIm1hcmtldCI6IkJUQ19VU0RUIiwidGltZW91dCI6IjYwIiwidHlwZXMiOlsic3BvdCJdfQ==',
    '2f6c3076902cebb8156a3ca03520ea44672290b3847e2c0022fc269f139469e1c43f7a5945aa871c239874efce01a448caf70d939856561b77ffb079d9792a48',
  ],
  [
    '{"request":"/api/v4/order/kill-switch","nonce":"1700000000001","market":"BTC_USDT","timeout":null}',
    'eyJyZXF1ZXN0IjoiL2FwaS92NC9vcmRlci9raWxsLXN3aXRjaCIsIm5vbmNlIjoiMTcwMDAwMDAwMDAwMSIsIm1hcmtldCI6IkJUQ19VU0RUIiwidGltZW91dCI6bnVsbH0=',
    '6dc4ed051bed9ed34c43785f0c171808ee1f1626206a618ca5ff402c2b5009a9791a51122b80ebaa90a81a9e4f2582d122dea5562cdc7fe51a5c1c8b77dc9ab4',
  ],
])(
  'payload and signature of %s are those of the other clients of the exchange',
  (body, payload, signature) => {
    expect(encodePayload(body)).toBe(payload);
    expect(signPayload(payload, 'test-secret')).toBe(signature);
  },
);
