-- Requests of the minute that need their list (see rpm.lua).
--include rpm
in_list = function(list, most)
  local w = rpm_read(window, list)
  rpm_expire(w)
  local before, slot = w.n, nil
  if most == 0 or before < most then slot = rpm_add(w, NOW) end
  -- What aged out of the list is gone from there, whether or not a limit refuses.
  window, is_new, is_new_window = rpm_written(w), true, true
  return before, slot
end
