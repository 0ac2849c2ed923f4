-- Sums of one holder, from the ledger, into counters that are not in effect yet. KEYS: 2 the hash
-- that has the holder's record, 3 the hash of its buckets. ARGV: 3 the record's field, 4 total,
-- week and month (two numbers each), then minute and amount, alternating.
--include head
--include refresh
local N = { struct.unpack('<dddddd', ARGV[4]) }
local r = fresh()
for at, i in ipairs({ 10, 18, 20 }) do put(r, i, N[2 * at - 1], N[2 * at], 1) end
for at = 5, #ARGV, 2 do call('HINCRBY', KEYS[3], 's' .. ARGV[at], ARGV[at + 1]) end
if #ARGV > 5 then call('PEXPIRE', KEYS[3], BUCKETS_TTL) end
sum_from(r, KEYS[3], 12, r[2])
sum_from(r, KEYS[3], 14, r[3])
local set = {}
put_record(set, ARGV[3], r)
call('HSET', KEYS[2], unpack(set))
return { 'ok' }
