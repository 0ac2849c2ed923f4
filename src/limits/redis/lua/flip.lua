-- Puts loaded counters in effect, if the node that loaded them still holds the lock. ARGV: 10 since
-- when requests that ended are known by id, 11 when the ledger was read. Gives {'ok'} or {'gone'},
-- and tells all nodes.
if call('GET', G .. 'lock') ~= NODE then return { 'gone' } end
call('SET', P .. 'seen_from', ARGV[10])
call('SET', P .. 'read_at', ARGV[11])
call('SET', G .. 'epoch', ARGV[2])
call('DEL', G .. 'lock')
call('PUBLISH', G .. 'news', 'moved ' .. ARGV[2])
return { 'ok' }
