-- Operations of a node whose results no request waits for. A batch has a number, and is applied
-- once. Every holder is read once and written once. KEYS: 2 the number of the node's last batch or
-- heartbeat, then the hashes of users and providers. ARGV: 3 the batch's number, 4 the channel of
-- the news, then an operation each (OP), ordered by user, key and session: kind, the places of the
-- user's and the provider's hash in KEYS (0: none), request, user, key, start, reserved and cost
-- (two numbers each), provider, time, number, the key's field, the member, and what it asks for.
-- Kinds: S settled, W withdrawn from a provider, G given back, E entered a provider, R running
-- (registered again), L a cost that became known late; `number` is that of its transaction (else 0).
-- Gives {'ok'} or {'gone'}, and publishes the amounts to all nodes.
--include head
local last = call('GET', KEYS[2])
if last and tonumber(last) >= tonumber(ARGV[3]) then return { 'ok' } end
--include gone
local OP = '<c1HHc16ddddddddddBc0Hc0'
-- Sums that came from the ledger may hold what a node settled shortly before they were read.
local meta = call('HMGET', P .. 'meta', 'seen_from', 'read_by', 'late')
-- `late_known`: the last transaction of late costs that they hold.
local counted_before, read_by, late_known = tonumber(meta[1] or '0'), tonumber(meta[2] or '0'), tonumber(meta[3] or '0')
-- The amounts are published. Another node may have read them in the ledger already: the time and the
-- id of a request come before its amount, and the number before a late cost (replica.rs).
local news, gone, left = {}, {}, {}
do
  --include settled
end
--include due
if #left > 0 or #due > 0 then
  --include moves
  --include operations
  --include sweep
end
if #gone > 0 then call('HDEL', KEYS[1], unpack(gone)) end
call('SET', KEYS[2], ARGV[3], 'PX', 604800000)
if #news > 0 then call('PUBLISH', ARGV[4], string.match(KEYS[1], '[^:]*$') .. '\n' .. table.concat(news)) end
return { 'ok' }
