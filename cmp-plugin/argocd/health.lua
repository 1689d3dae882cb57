-- The health of a batch/Job, with how far it has come.
--
-- Argo CD's own rule calls a Job that Kueue has started "Healthy" as soon as it runs. This one holds for every Job that
-- Argo CD manages, of whatever Application. Scripts have neither the string nor the math library here.
local spec, status = obj.spec or {}, obj.status or {}

local is = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    is[condition.type] = condition
  end
end

local succeeded = status.succeeded or 0
local progress = succeeded .. " succeeded"
if spec.completions ~= nil then
  progress = succeeded .. " of " .. spec.completions .. " succeeded"
end

local which = status.failedIndexes
if which ~= nil and which ~= "" then
  if #which > 80 then
    which = "many"
  end
  which = ", failed indexes: " .. which
else
  which = ""
end

local function health(name, message)
  return { status = name, message = message }
end

if is.Failed ~= nil then
  local reason = is.Failed.message or is.Failed.reason or "no reason given"
  if is.Failed.reason == "FailedIndexes" and spec.completions ~= nil then
    -- Every index has had its attempts, so whatever did not succeed has failed.
    local failed = spec.completions - succeeded
    if succeeded == 0 then
      return health("Degraded", "failed: " .. progress)
    end
    return health("Degraded", "finished: " .. progress .. ", " .. failed .. " failed" .. which)
  end
  return health("Degraded", "failed: " .. progress .. which .. " (" .. reason .. ")")
end
if is.Complete ~= nil then
  return health("Healthy", "complete: " .. progress)
end
if is.FailureTarget ~= nil then
  return health("Progressing", "stopping: " .. progress .. which)
end
if spec.parallelism == 0 then
  return health("Suspended", "paused: " .. progress .. which)
end
if spec.suspend == true or is.Suspended ~= nil then
  return health("Suspended", "queued: " .. progress .. which)
end
local active = status.active or 0
if active == 0 then
  return health("Progressing", "starting: " .. progress .. which)
end
return health("Progressing", "running: " .. progress .. ", " .. active .. " active" .. which)
