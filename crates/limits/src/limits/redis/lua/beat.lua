-- A node's heartbeat; the first one puts up the node's fence. KEYS: 2 the epoch, 3 the nodes, 4 the
-- number of the node's last batch or heartbeat, 5 the lock of rebuilds. ARGV: 3 how long it holds
-- (ms), 4 '1' if it is the first, 5 the epoch of the node, 6 its number. Gives {'ok', 1 if a node
-- has the lock, nodes whose time is over…} or {'gone'}. Redis's own clock counts, so that nodes
-- need not agree on theirs.
--include head
if call('GET', KEYS[2]) ~= ARGV[5] then return { 'gone' } end
if ARGV[4] == '1' then call('HSET', KEYS[1], '', '1') end
--include gone
--include sessions
call('PEXPIRE', KEYS[1], 604800000)
call('SET', KEYS[4], ARGV[6], 'PX', 604800000)
local time = call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[3], int(ms + ARGV[3]), string.match(KEYS[1], '[^:]*$'))
local over = call('ZRANGEBYSCORE', KEYS[3], '-inf', int(ms), 'LIMIT', 0, 16)
--include due
--include sweep
return { 'ok', call('EXISTS', KEYS[5]), unpack(over) }
