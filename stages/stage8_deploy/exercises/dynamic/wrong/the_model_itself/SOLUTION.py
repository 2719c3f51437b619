return model
