-- Which limit of a provider keeps a request away: 'limit', 'cap', or nil. Shared by enter.lua and
-- peek.lua.
local function blocked(held, pid, block)
  local sums = figures('p' .. pid, block)
  for period = 1, 5 do
    local limit = ARGV[block + period - 1]
    if limit ~= '' and sums[period] >= tonumber(limit) then return 'limit' end
  end
  local cap = tonumber(ARGV[block + 5])
  if cap == 0 then return nil end
  local set = P .. 'z:p' .. pid
  trim(set)
  if call('ZCARD', set) >= cap and not call('ZSCORE', set, member_of(held)) then return 'cap' end
end
