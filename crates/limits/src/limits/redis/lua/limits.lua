-- The limits of a holder as numbers: for spending in the order of the checks (inf: none), then
-- sessions, 1 if the day is fixed, the day's span.
--include rows
local CAP, FIXED, STARTS, ENDS = PERIODS + 1, PERIODS + 2, PERIODS + 3, PERIODS + 4
