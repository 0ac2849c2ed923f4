-- Puts loaded counters in effect, if the node that loaded them still holds the lock, and takes away
-- the fences of all nodes that count by the ones before. The lock stays: its node removes the names
-- of other counters next. KEYS: 2 the epoch, 3 the lock, 4 the nodes. ARGV: 3 since when requests
-- that ended are known by id, 4 the new epoch, 5 the channel of the news, 6 what the names of every
-- epoch begin with, 7 when the ledger had been read, at the latest, 8 the last transaction of late
-- costs that it had. Gives {'ok'} or {'gone'}, and notifies all nodes.
local call = redis.call
if call('GET', KEYS[3]) ~= string.match(KEYS[1], '[^:]*$') then return { 'gone' } end
local before = call('GET', KEYS[2])
if before then
  for _, node in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do call('DEL', ARGV[6] .. before .. ':n:' .. node) end
end
call('HSET', ARGV[1] .. 'meta', 'seen_from', ARGV[3], 'read_by', ARGV[7], 'late', ARGV[8])
call('SET', KEYS[2], ARGV[4])
call('PUBLISH', ARGV[5], 'moved ' .. ARGV[4])
return { 'ok' }
