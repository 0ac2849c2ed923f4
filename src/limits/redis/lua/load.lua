-- Sums of one holder, from the ledger, into counters that are not in effect yet.
-- ARGV: 10 holder, 11 total, 12 week, 13 month, then minute and amount, alternating.
call('HSET', P .. 'h:' .. ARGV[10], 'st', ARGV[11], 'week', WEEK_START, 'week_end', WEEK_END, 'sw', ARGV[12],
  'month', MONTH_START, 'month_end', MONTH_END, 'sm', ARGV[13])
for at = 14, #ARGV, 2 do call('HINCRBY', P .. 'b:' .. ARGV[10], 's' .. ARGV[at], ARGV[at + 1]) end
if #ARGV >= 14 then call('PEXPIRE', P .. 'b:' .. ARGV[10], BUCKETS_TTL) end
return { 'ok' }
