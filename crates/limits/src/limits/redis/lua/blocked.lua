-- Which limit of a provider keeps a request away: 'limit', 'cap', or nil. After 'limit' come the
-- places of the spending limits that what is spent reaches without what is reserved. The provider's
-- limits begin after a place of a list of numbers.
local function blocked(sc, member, limits, from)
  local r, sums = record(sc, 'p'), SUMS[limits[from + FIXED]]
  if limits[from + FIXED] == 1 and begin_day(r, sc.buckets, limits[from + STARTS], limits[from + ENDS]) then sc.changed.p = true end
  local reached
  for i = 1, PERIODS do
    local limit, sum = limits[from + i], held(r, sums[i])
    if sum >= limit then
      reached = (reached or 'limit') .. (sum - reserved(r, sums[i]) >= limit and i or '')
    end
  end
  if reached then return reached end
  local cap = limits[from + CAP]
  if cap == 0 then return nil end
  trim(sc)
  if call('ZCARD', sc.z) >= cap and not session(sc, member) then return 'cap' end
end
