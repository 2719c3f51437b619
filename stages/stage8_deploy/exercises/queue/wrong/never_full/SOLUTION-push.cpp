if (is_closed_) return false;
waiting_.push_back({request, now});
return true;
