-- The fence: the hash of a node's running requests has an empty field for as long as these counters
-- are in effect and the node is not given up.
if call('HEXISTS', KEYS[1], '') == 0 then return { 'gone' } end
